"""L4S (RFC 9330 to 9332), and controllers that hold a delay: Copa and Swift."""
