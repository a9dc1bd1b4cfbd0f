from lodestream.cli.main import main

main()
