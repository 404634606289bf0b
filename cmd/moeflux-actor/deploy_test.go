package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/process"
)

// readDeploy returns a file of docs/deploy.
func readDeploy(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The settings of the example are taken, and with them the commands of the unit and of the image.
func TestDeployFiles(t *testing.T) {
	printed := mustCall(t, "", "serve", "--config", "../../docs/deploy/config.yaml", "--print-config").stdout
	if !strings.Contains(printed, "\napi-key-file: /etc/moeflux-actor/keys\n") {
		t.Errorf("the settings are %s", printed)
	}
	start := regexp.MustCompile(`(?m)^ExecStart=(\S+) (.*)$`).FindStringSubmatch(readDeploy(t, "moeflux-actor.service"))
	if start == nil || !strings.HasSuffix(start[1], "/"+process.Program) {
		t.Fatalf("the unit starts %q", start)
	}
	if err := parses(strings.Fields(start[2])); err != nil {
		t.Errorf("%s: %v", start[2], err)
	}
	entry := regexp.MustCompile(`(?m)^ENTRYPOINT (\[.*\])$`).FindStringSubmatch(readDeploy(t, "Dockerfile"))
	var args []string
	if entry == nil || json.Unmarshal([]byte(entry[1]), &args) != nil || len(args) < 2 {
		t.Fatalf("the image starts %q", entry)
	}
	if err := parses(append(args[1:], "--model", "/models/qwen", "--api-key-file", "/keys/keys")); err != nil {
		t.Errorf("%s: %v", args, err)
	}
}

// The image is built with the Go that go.mod asks for.
func TestDeployGo(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))
	if version == nil || !strings.Contains(readDeploy(t, "Dockerfile"), "FROM golang:"+version[1]+" AS build\n") {
		t.Errorf("go.mod asks for %q", version)
	}
}
