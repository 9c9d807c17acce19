"""Real coding agents behind the gateway, before a scripted model that checks every request."""
