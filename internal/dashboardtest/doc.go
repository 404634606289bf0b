// Package dashboardtest has a module of its own, so that Prometheus' query engine is nobody else's
// dependency. Its test runs every query of the dashboard (docs/deploy/grafana.json) on the figures
// of a server that has answered requests.
package dashboardtest
