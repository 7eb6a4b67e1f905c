"""The command line. Each verb imports what it needs when it runs, so that
``kbn match`` answers at once; nothing imports this package."""
