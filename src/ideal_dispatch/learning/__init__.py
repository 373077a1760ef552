"""Learning from trips whose routes were never seen: the only home of torch."""
