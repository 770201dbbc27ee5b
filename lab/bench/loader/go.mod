module bench/loader

go 1.26
