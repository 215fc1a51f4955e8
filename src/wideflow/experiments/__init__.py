"""Published claims, each as a set-up, a run, and a check with its tolerance."""
