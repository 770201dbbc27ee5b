"""Laws that hold for any bytes, one module for each reader of bytes; `make fuzz-guided` looks for what breaks one."""
