"""Speed, memory and compilation, each beside a peer in the same run: `make bench`.

Machines differ and other people load them, so nothing here claims a time. A row is a ratio (or, where
asked so, an amount), the median over trials in which peer and wideflow take turns."""
