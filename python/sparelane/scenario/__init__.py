"""Scenarios as users write them: settings and overrides as Python values, the JSON schema, and shipped scenarios."""
