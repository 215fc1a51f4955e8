"""What training moved in one model, and the verdict."""
