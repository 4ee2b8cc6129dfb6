"""The service: many clients, one model."""
