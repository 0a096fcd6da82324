"""Regulated TCP (RTCP): its tables and figures."""
