package compaction

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// MaxBatchBytes bounds the messages of a compressed batch: what claims to be larger is kept whole.
const MaxBatchBytes = 64 << 20

// codec compresses and decompresses batches. It keeps what can be used again.
type codec struct {
	reader *zstd.Decoder
	writer *zstd.Encoder
}

var errSize = errors.New("the size is not the one that the metadata tells")

// decompress returns the messages of a batch; size is what the metadata says of them.
func (c *codec) decompress(kind pulsarproto.CompressionType, content []byte, size uint32) ([]byte, error) {
	if kind == pulsarproto.CompressionType_NONE {
		return content, nil
	}
	if size > MaxBatchBytes {
		return nil, fmt.Errorf("uncompressed_size is %d, want at most %d", size, MaxBatchBytes)
	}
	var out []byte
	var err error
	switch kind {
	case pulsarproto.CompressionType_LZ4:
		out = make([]byte, size)
		var n int
		n, err = lz4.UncompressBlock(content, out)
		out = out[:max(n, 0)]
	case pulsarproto.CompressionType_ZLIB:
		out, err = inflate(content, size)
	case pulsarproto.CompressionType_ZSTD:
		out, err = c.unzstd(content, size)
	case pulsarproto.CompressionType_SNAPPY:
		out, err = unsnappy(content, size)
	default:
		err = fmt.Errorf("unknown compression %v", kind)
	}
	if err != nil {
		return nil, err
	}
	if len(out) != int(size) {
		return nil, errSize
	}
	return out, nil
}

func inflate(content []byte, size uint32) ([]byte, error) {
	r, err := zlib.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, int64(size)+1))
}

func (c *codec) unzstd(content []byte, size uint32) (out []byte, err error) {
	if c.reader == nil {
		c.reader, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxBatchBytes))
		if err != nil {
			return nil, err
		}
	}
	if err := c.reader.Reset(bytes.NewReader(content)); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(c.reader, int64(size)+1))
}

func unsnappy(content []byte, size uint32) ([]byte, error) {
	n, err := snappy.DecodedLen(content)
	if err != nil {
		return nil, err
	}
	if n != int(size) {
		return nil, errSize
	}
	return snappy.Decode(nil, content)
}

// compress is the way back.
func (c *codec) compress(kind pulsarproto.CompressionType, messages []byte) ([]byte, error) {
	switch kind {
	case pulsarproto.CompressionType_NONE:
		return messages, nil
	case pulsarproto.CompressionType_LZ4:
		out := make([]byte, lz4.CompressBlockBound(len(messages)))
		n, err := (&lz4.Compressor{}).CompressBlock(messages, out)
		return out[:n], err
	case pulsarproto.CompressionType_ZLIB:
		var out bytes.Buffer
		w := zlib.NewWriter(&out)
		if _, err := w.Write(messages); err != nil {
			return nil, err
		}
		err := w.Close()
		return out.Bytes(), err
	case pulsarproto.CompressionType_ZSTD:
		if c.writer == nil {
			w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
			if err != nil {
				return nil, err
			}
			c.writer = w
		}
		return c.writer.EncodeAll(messages, nil), nil
	case pulsarproto.CompressionType_SNAPPY:
		return snappy.Encode(nil, messages), nil
	}
	return nil, fmt.Errorf("unknown compression %v", kind)
}

func (c *codec) close() {
	if c.reader != nil {
		c.reader.Close()
	}
}
