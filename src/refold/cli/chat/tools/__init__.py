"""What a model may use in a chat: files to read, and MCP servers."""
