"""The main job: a spec becomes runs, kept in a folder, and what they say about each other."""
