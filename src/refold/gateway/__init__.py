"""The gateway: agents change their base URL, and their conversations are governed and logged."""
