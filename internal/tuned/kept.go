package tuned

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/io/fingerprint"
)

// version is that of the file.
const version = 1

// maxFile bounds what is read: a file that tune wrote has some hundred bytes.
const maxFile = 64 << 10

// Kept is the content of a file.
type Kept struct {
	Version  int        `json:"version"`
	Program  string     `json:"program"`
	Name     string     `json:"name"`  // of the model, for people
	Model    string     `json:"model"` // its fingerprint
	Machine  Machine    `json:"machine"`
	Engine   Conditions `json:"engine"`
	Settings Settings   `json:"settings"`
	Found    Found      `json:"found"`
}

// Machine is where settings were measured.
type Machine struct {
	OS          string `json:"os"`
	Processor   string `json:"processor"`
	Cores       int    `json:"cores"` // that the process may use
	MemoryBytes int64  `json:"memory_bytes"`
}

// Conditions are what an engine runs with beside the settings, as far as they depend on it.
type Conditions struct {
	Device      string `json:"device"`
	Activations string `json:"activations"`
	KV          string `json:"kv"`
	TopK        int    `json:"experts_per_token"`
	ExpertIO    string `json:"expert_io"`
	Resident    bool   `json:"resident"`
	Slots       int    `json:"slots"`
}

// Found is what tune found out about the settings.
type Found struct {
	Gain  float64   `json:"gain"` // of the time without them, the median
	Pairs int       `json:"pairs"`
	Test  string    `json:"test"`
	P     float64   `json:"p"`
	At    time.Time `json:"at"`
}

// Path returns the file of the model that a Config names, in a folder of the user's cache. The
// error is that of a model whose files cannot be read.
func Path(cache string, cfg *actors.Config) (string, error) {
	of, err := fingerprint.Of(cfg.Model, cfg.ExpertsDir)
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "tuned", of.String()[:32]+".json"), nil
}

// New returns what to keep of settings that were measured with a Config. info is what an engine
// runs with without them.
func New(cfg *actors.Config, info *actors.Info, s Settings, found Found) (*Kept, error) {
	of, err := fingerprint.Of(cfg.Model, cfg.ExpertsDir)
	if err != nil {
		return nil, err
	}
	return &Kept{
		Version: version, Program: actors.Program(), Name: info.Name, Model: of.String(), Machine: thisMachine(), Engine: conditionsOf(cfg.Device, info),
		Settings: s, Found: found,
	}, nil
}

func thisMachine() Machine {
	m := actors.ThisMachine()
	return Machine{OS: m.OS, Processor: m.Processor, Cores: m.Cores, MemoryBytes: m.MemoryBytes}
}

func conditionsOf(d gpu.Device, i *actors.Info) Conditions {
	c := Conditions{
		Device: i.Device, Activations: i.Activations, KV: string(i.KV), TopK: i.TopK, ExpertIO: string(i.ExpertIO), Resident: i.Resident, Slots: i.Slots,
	}
	if p, ok := d.(gpu.Processor); ok { // the name of another number of threads is another
		c.Device = "host/" + p.Kernels()
	}
	return c
}

// Save writes the file, all or nothing, and makes its folder.
func (k *Kept) Save(path string) error {
	text, err := json.MarshalIndent(k, "", "\t")
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(path), durable.Shared); err != nil {
		return err
	}
	return durable.WriteFile(path, durable.Shared, append(text, '\n'))
}

// Remove removes the file, and reports whether there was one.
func Remove(path string) (bool, error) {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Load reads a file. Where there is none the error is fs.ErrNotExist.
func Load(path string) (*Kept, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file that tune wrote", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, err
	}
	var k Kept
	if err := json.Unmarshal(text, &k); err == nil && k.Version != version {
		return nil, fmt.Errorf("%s is of another version of this program", path)
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&k); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return &k, nil
}
