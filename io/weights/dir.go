package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/model"
)

// Where moeflux puts the parts of a model below one directory.
const (
	artifactsDir  = "artifacts" // the manifest and the data file
	checkpointDir = "mlx"       // the checkpoint that they were made from: configuration, tokenizer
)

// The names of configuration files.
const (
	configName     = "config.json"
	generationName = "generation_config.json"
	tokenizerName  = "tokenizer.json"
	tiktokenName   = "tiktoken.model"
	hunyuanName    = "hy.tiktoken"
)

// NoConfigError reports a directory that does not say what its model is.
type NoConfigError struct {
	Dir string
	Err error // wraps fs.ErrNotExist if no such file exists
}

func (e *NoConfigError) Error() string {
	return fmt.Sprintf("weights: %s is not a packed model directory: it has no %s, and no %s with a config object: %v", e.Dir, configName, ManifestName, e.Err)
}

func (e *NoConfigError) Unwrap() error { return e.Err }

// ReadConfig reads the configuration of the model in a packed directory. It looks for config.json,
// with generation_config.json beside it, in dir and in dir/mlx, where moeflux keeps the checkpoint.
// Without that file it uses the config object of the manifest of weights. The error is a
// *NoConfigError, one of model.ParseConfig, or comes from the operating system.
func ReadConfig(dir string) (*model.Config, error) {
	at := configDir(dir)
	config, err := os.ReadFile(filepath.Join(at, configName))
	if errors.Is(err, fs.ErrNotExist) {
		return readManifestConfig(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	generation, err := readGeneration(at)
	if err != nil {
		return nil, err
	}
	cfg, err := model.ParseConfig(config, generation)
	if err != nil {
		return nil, fmt.Errorf("weights: %s: %w", at, err)
	}
	return cfg, nil
}

// Paths are the files of a packed directory that say what the model is. Config need not exist: the
// manifest may have the configuration.
type Paths struct{ Config, Manifest, Data string }

// Find returns where ReadConfig and Open look for the files of a packed directory.
func Find(dir string) Paths {
	at := filesDir(dir)
	return Paths{
		Config:   filepath.Join(configDir(dir), configName),
		Manifest: filepath.Join(at, ManifestName),
		Data:     filepath.Join(at, DataName),
	}
}

// configDir returns the directory of config.json: dir, or the checkpoint that moeflux keeps below
// it.
func configDir(dir string) string {
	below := filepath.Join(dir, checkpointDir)
	if !exists(filepath.Join(dir, configName)) && exists(filepath.Join(below, configName)) {
		return below
	}
	return dir
}

// ReadGeneration reads how the model's makers want tokens chosen: the generation_config.json beside
// the config.json that ReadConfig reads. It returns nil if there is no such file. The error is that
// of model.ParseGeneration, or comes from the operating system.
func ReadGeneration(dir string) (*model.Generation, error) {
	at := configDir(dir)
	raw, err := readGeneration(at)
	if raw == nil || err != nil {
		return nil, err
	}
	g, err := model.ParseGeneration(raw)
	if err != nil {
		return nil, fmt.Errorf("weights: %s: %w", at, err)
	}
	return g, nil
}

// readGeneration returns generation_config.json, nil if there is none.
func readGeneration(dir string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(dir, generationName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("weights: %w", err)
	}
	return raw, nil
}

func readManifestConfig(dir string) (*model.Config, error) {
	at := filesDir(dir)
	path := filepath.Join(at, ManifestName)
	raw, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NoConfigError{Dir: dir, Err: err}
	}
	if err != nil {
		return nil, err
	}
	var m struct {
		Config json.RawMessage `json:"config"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, &ManifestError{Path: path, Why: "not valid JSON: " + err.Error(), Err: err}
	}
	if len(m.Config) == 0 || string(m.Config) == "null" {
		return nil, &NoConfigError{Dir: dir, Err: &ManifestError{Path: path, Why: `no key "config"`}}
	}
	generation, err := readGeneration(dir)
	if err != nil {
		return nil, err
	}
	cfg, err := model.ParseManifestConfig(m.Config, generation)
	if err != nil {
		return nil, fmt.Errorf("weights: %s: %w", at, err)
	}
	return cfg, nil
}

// filesDir returns the directory of the manifest and the data file: dir, or the directory below it
// where moeflux puts them.
func filesDir(dir string) string {
	below := filepath.Join(dir, artifactsDir)
	if !exists(filepath.Join(dir, ManifestName)) && exists(filepath.Join(below, ManifestName)) {
		return below
	}
	return dir
}

// IsPacked reports whether the manifest of packed weights lies in a directory, or where moeflux
// puts it below one.
func IsPacked(dir string) bool { return exists(filepath.Join(filesDir(dir), ManifestName)) }

// TextDir returns the directory with the chat template and the tokenizer.json, tiktoken.model or
// hy.tiktoken of a packed directory: dir, or the checkpoint that moeflux keeps below it. ok is
// false if there is no tokenizer; the model then runs on token ids only.
func TextDir(dir string) (text string, ok bool) {
	for _, d := range []string{dir, filepath.Join(dir, checkpointDir)} {
		for _, name := range []string{tokenizerName, tiktokenName, hunyuanName} {
			if exists(filepath.Join(d, name)) {
				return d, true
			}
		}
	}
	return "", false
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
