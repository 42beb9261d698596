"""`python -m longshift` is the command `longshift`."""

from longshift.cli.main import main

if __name__ == "__main__":
    main()
