module lease-webhook.example/cluster/pause

go 1.26.0
