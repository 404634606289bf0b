package chat

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// objectOf reads a JSON object; what is for the error.
func objectOf(data []byte, what string) (map[string]json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("chat: %.40s is not %s: %w", data, what, err)
	}
	if object == nil {
		return nil, fmt.Errorf("chat: null is not %s", what)
	}
	return object, nil
}

func sortedKeys(object map[string]json.RawMessage) []string {
	return slices.Sorted(maps.Keys(object))
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

func readString(key string, raw json.RawMessage, s *string) error {
	if json.Unmarshal(raw, s) != nil {
		return fmt.Errorf("chat: %s is %.40s, not a string", key, raw)
	}
	return nil
}
