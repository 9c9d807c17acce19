"""The gateway: agents change their base URL, and their conversations are managed and logged."""
