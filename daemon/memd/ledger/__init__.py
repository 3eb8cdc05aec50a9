"""Every visible thing every agent said or did, once, in order, searchable."""
