"""Listings: decoded instructions in words."""
