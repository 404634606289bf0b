package secrets

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestGroupKeys wants the same keys of the same token, and others of another one.
func TestGroupKeys(t *testing.T) {
	keys := func(token string) (key []byte, proof [32]byte) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		f := Files{TokenFile: file}
		key, proof, err := f.GroupKeys()
		if err != nil || len(key) != 32 {
			t.Fatalf("a key of %d bytes, %v", len(key), err)
		}
		if sum, _ := f.Token(); bytes.Equal(key, sum[:]) || proof == sum || bytes.Equal(key, proof[:]) {
			t.Error("one of token, key and proof tells another")
		}
		return key, proof
	}
	key, proof := keys("what all of them know")
	again, proofAgain := keys("what all of them know\n")
	other, otherProof := keys("what nobody else knows")
	if !bytes.Equal(key, again) || proof != proofAgain || bytes.Equal(key, other) || proof == otherProof {
		t.Error("keys do not follow from the token")
	}
	if key, proof, err := new(Files).GroupKeys(); key != nil || proof != [32]byte{} || err != nil {
		t.Errorf("without a token: %v, %v, %v", key, proof, err)
	}
}

// TestCheckGroup wants a token of hosts that other machines reach.
func TestCheckGroup(t *testing.T) {
	for addr, alone := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "10.0.0.2:1": false, "0.0.0.0:1": false, ":1": false, "node:1": false} {
		for _, f := range []Files{{}, {Cert: "x", Key: "x", CA: "x"}} {
			if err := f.CheckGroup(addr); (err == nil) != alone || !alone && !errors.Is(err, ErrNoKey) {
				t.Errorf("%s with %+v: %v", addr, f, err)
			}
		}
		for _, f := range []Files{{TokenFile: "x"}, {Insecure: true}} {
			if err := f.CheckGroup(addr); err != nil {
				t.Errorf("%s with %+v: %v", addr, f, err)
			}
		}
	}
}
