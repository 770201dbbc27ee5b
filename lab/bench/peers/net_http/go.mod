module bench/net_http

go 1.26
