"""What is written: objects as data, and folders that are whole or not there at all."""
