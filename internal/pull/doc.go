// Package pull joins a hub and the converter: it fetches a checkpoint and converts each shard when
// it has come, so that the disk holds the packed model and one shard, or it fetches a GGUF file as
// it is.
//
// What is under way lies beside the target: DIR.partial is the converter's, DIR.download holds the
// commit that all files are of, the small files, and the shard that is coming. The same call goes
// on from there, also after a kill, and removes both when the model is complete.
package pull
