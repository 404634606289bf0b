package testenv

import "testing"

func TestSettings(t *testing.T) {
	t.Setenv(Thorough, "")
	values := []int{3, 4, 7, 3}
	met, combinations := map[meeting]bool{}, 0
	for c := range Settings(values...) {
		combinations++
		for m := range meetings(c) {
			met[m] = true
		}
	}
	// 3*4 + 3*7 + 3*3 + 4*7 + 4*3 + 7*3. The two largest alone need 28 combinations.
	if len(met) != 103 || combinations < 28 || combinations > 34 {
		t.Errorf("%d combinations with %d meetings, want some 28 with 103", combinations, len(met))
	}
	t.Setenv(Thorough, "1")
	combinations = 0
	for range Settings(values...) {
		combinations++
	}
	if combinations != 3*4*7*3 {
		t.Errorf("%d combinations when thorough, want all %d", combinations, 3*4*7*3)
	}
}
