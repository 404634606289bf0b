package flags

import (
	"strconv"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// Sampling are the flags of sample.Options. A flag with a tag "option" sets that field, and its
// help begins with the field's comment. A nil value was not given: the model's own counts then.
type Sampling struct {
	Temperature      *float64 `option:"Temperature" placeholder:"T" help:"Divides the logits. 0 takes the largest logit, and of the others only penalties and bias matter then. With 0 nothing is taken from the model's generation_config.json. Default: the model's own, else 0."`
	TopK             *int     `option:"TopK" placeholder:"K" help:"Keeps the K most likely tokens. 0 keeps all. Of equal ones the lower ids are kept. Default: the model's own, else 0."`
	TopP             *float64 `option:"TopP" placeholder:"TopP" help:"Keeps the most likely tokens until their probabilities sum to --top-p. 0 and 1 keep all. Default: the model's own, else 0."`
	MinP             *float64 `option:"MinP" placeholder:"MinP" help:"Drops tokens that are less than --min-p times as likely as the most likely one. 0 keeps all. Default: the model's own, else 0."`
	RepeatPenalty    *float64 `option:"RepeatPenalty" placeholder:"X" help:"Makes tokens of the history less likely: positive logits are divided by it, others multiplied. 0 and 1 mean none; below 1 repetition is favoured. From 0.01 to 100. Default: the model's own repetition_penalty, else 0."`
	PresencePenalty  float64  `option:"PresencePenalty" placeholder:"X" help:"Subtracted once from the logit of every token that was sampled before; the prompt does not count. From -2 to 2. 0 means none; below 0 repetition is favoured."`
	FrequencyPenalty float64  `option:"FrequencyPenalty" placeholder:"X" help:"Subtracted from a token's logit for each time that it was sampled before; the prompt does not count. From -2 to 2. 0 means none; below 0 repetition is favoured."`
	LogitBias        []string `option:"LogitBias" sep:"none" placeholder:"ID=VALUE" help:"Adds a value to the logit of a token, by its id. From -100 to 100; -100 excludes the token. May be given several times."`
	Seed             *uint64  `option:"Seed" placeholder:"N" help:"Chooses the random stream. The same seed, logits and options give the same tokens. Default: a random one, which the figures name."`
	Stop             []string `sep:"none" placeholder:"TEXT" help:"End the text before this string. May be given several times."`
	LogProbs         *int     `name:"logprobs" placeholder:"N" help:"With --json: the log-probability of every new token and of the N most likely ones there, in the model's own distribution, before penalties, bias, temperature and cuts."`
}

// Where a sampling value comes from.
const (
	FromFlag    = "flag"
	FromModel   = "generation_config.json"
	FromNowhere = "default"
)

// SamplingUsed are the sampling values of a text, as --json prints them.
type SamplingUsed struct {
	Temperature      float64 `json:"temperature"` // 0: greedy
	TopK             int     `json:"top_k"`
	TopP             float64 `json:"top_p"`
	MinP             float64 `json:"min_p"`
	RepeatPenalty    float64 `json:"repeat_penalty"`
	PresencePenalty  float64 `json:"presence_penalty"`
	FrequencyPenalty float64 `json:"frequency_penalty"`
	// From says where the first five come from, by name: flag, generation_config.json or default.
	From map[string]string `json:"from"`
}

// CheckSampling reports flags that no model can change.
func (f *Sampling) CheckSampling() error {
	if f.LogProbs != nil && *f.LogProbs < 0 {
		return process.Usagef("--logprobs %d: must be 0 or more", *f.LogProbs)
	}
	for _, s := range f.Stop {
		if s == "" {
			return process.Usagef("--stop is empty; give the text that ends the output")
		}
	}
	given, err := f.given()
	if err != nil {
		return err
	}
	return process.Usage(given.Validate())
}

// given returns what the flags say.
func (f *Sampling) given() (s moeflux.Sampling, err error) {
	s = moeflux.Sampling{
		Temperature: f.Temperature, TopK: f.TopK, TopP: f.TopP, MinP: f.MinP, RepeatPenalty: f.RepeatPenalty,
		PresencePenalty: f.PresencePenalty, FrequencyPenalty: f.FrequencyPenalty, Seed: f.Seed,
	}
	s.LogitBias, err = parseBias(f.LogitBias)
	return s, err
}

// SamplingFor returns how tokens are chosen with the model of a directory, and where each value
// comes from: what the flags leave open the model's generation_config.json says. Without a seed a
// random one is drawn. The flags have passed CheckSampling.
func (f *Sampling) SamplingFor(inv *process.Invocation, dir string) (moeflux.Sampling, SamplingUsed, error) {
	given, err := f.given()
	if err != nil {
		return given, SamplingUsed{}, err
	}
	var own moeflux.Sampling
	if !f.greedy() {
		var ignored []string
		if own, ignored, err = moeflux.Defaults(dir); err != nil {
			return given, SamplingUsed{}, err
		}
		if len(ignored) > 0 {
			inv.Say("the model's %s sets %s, which this program does not know and ignores", FromModel, strings.Join(ignored, ", "))
		}
	}
	used := f.Choose(own)
	if given.Seed == nil && used.Temperature > 0 {
		given.Seed = new(inv.Env.Seed())
	}
	return given, used, nil
}

// greedy reports whether the flags ask for the most likely tokens whatever the model says.
func (f *Sampling) greedy() bool { return f.Temperature != nil && *f.Temperature == 0 }

// Choose puts together what the flags and the model say.
func (f *Sampling) Choose(own moeflux.Sampling) SamplingUsed {
	u := SamplingUsed{PresencePenalty: f.PresencePenalty, FrequencyPenalty: f.FrequencyPenalty, From: map[string]string{}}
	u.Temperature = pick(u.From, "temperature", f.Temperature, own.Temperature)
	u.TopK = pick(u.From, "top_k", f.TopK, own.TopK)
	u.TopP = pick(u.From, "top_p", f.TopP, own.TopP)
	u.MinP = pick(u.From, "min_p", f.MinP, own.MinP)
	u.RepeatPenalty = pick(u.From, "repeat_penalty", f.RepeatPenalty, own.RepeatPenalty)
	return u
}

// pick returns a flag's value, else the model's, else 0, and notes under its name which it is.
func pick[T any](from map[string]string, name string, flag, own *T) (value T) {
	switch {
	case flag != nil:
		from[name] = FromFlag
		return *flag
	case own != nil:
		from[name] = FromModel
		return *own
	}
	from[name] = FromNowhere
	return value
}

// Text says for people what the model itself contributes; "" for nothing.
func (u *SamplingUsed) Text() string {
	if u.From["temperature"] != FromModel || u.Temperature == 0 {
		return ""
	}
	return "sampled as the model's " + FromModel + " says"
}

// parseBias reads ID=VALUE pairs.
func parseBias(pairs []string) (map[int32]float64, error) {
	bias := map[int32]float64{}
	for _, pair := range pairs {
		left, right, _ := strings.Cut(pair, "=")
		id, idErr := strconv.ParseInt(left, 10, 32)
		value, err := strconv.ParseFloat(right, 64)
		if idErr != nil || err != nil {
			return nil, process.Usagef("--logit-bias %q: give a token id and a value, like 198=-100", pair)
		}
		if _, again := bias[int32(id)]; again {
			return nil, process.Usagef("--logit-bias names token %d twice", id)
		}
		bias[int32(id)] = value
	}
	return bias, nil
}
