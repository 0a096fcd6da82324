"""The commands of `sparelane`, one module each, named as users type them."""
