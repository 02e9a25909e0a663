package etcdstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/storage/wal"
)

const (
	// backendGrowth is what the backend may take as its file grows. Source: bbolt, DefaultAllocSize.
	backendGrowth = 16 * mebibyte
	// leastDiskReserve is the least free disk at which data goes on: twice the least of the quota, for what is written is in
	// the write-ahead log as well.
	leastDiskReserve = 2 * leastDataReserve
)

// disk sees how much of the free disk may be written, beside what etcd may take in one jump.
//
// A step of a compaction writes pages again, with the values in them, before the old pages are free. It may take as much as is
// in use, out of free pages or of the free disk.
//
// etcd allocates segments of its write-ahead log whole: one is written, the next lies ready, and the one behind is allocated
// when the writing moves on. A failure of that ends the process. So the log saves for it: what is written of a segment is
// set aside until the next one is allocated.
type disk struct {
	dir     directory
	free    func(dir string) (int64, error)
	rewrite int64 // the most bytes that one step of a compaction is expected to write

	newest string // segment
	saved  int64  // bytes written of the newest segment
}

func newDisk(dir directory, quota int64, free func(string) (int64, error)) *disk {
	return &disk{dir: dir, free: free, rewrite: int64(compactionBatch(quota)) * mebibyte}
}

// room takes the bytes charged since the last call, those in use in the backend and those of its free pages. It returns how many bytes may
// be written to backend and log together, and what of the disk is free. The segments are listed before the free bytes are
// read: one that is allocated in between counts as both missing and taken.
func (d *disk) room(charged, live, pages int64) (room, free int64, err error) {
	segments, err := d.segments()
	if err != nil {
		return 0, 0, err
	}
	if free, err = d.free(string(d.dir)); err != nil {
		return 0, 0, err
	}
	switch {
	case d.newest == "":
		d.saved = wal.SegmentSizeBytes // or any part of it
	case d.newest != segments.newest:
		d.saved = charged
	default:
		d.saved += charged
	}
	d.newest, d.saved = segments.newest, min(d.saved, wal.SegmentSizeBytes)
	rewrite := min(live, d.rewrite)
	room = free - backendGrowth - d.saved - segments.missing() - max(0, rewrite-pages)
	return room + min(room, max(0, pages-rewrite)), free, nil
}

// segments is what of the write-ahead log is on the disk.
type segments struct {
	newest string // name of the segment that is written, empty if there is none
	ready  bool   // the next one is allocated
}

// missing is how many bytes the next segment will take.
func (s segments) missing() int64 {
	if s.ready {
		return 0
	}
	return wal.SegmentSizeBytes
}

func (d *disk) segments() (segments, error) {
	entries, err := os.ReadDir(d.dir.wal())
	if errors.Is(err, os.ErrNotExist) {
		return segments{}, nil
	}
	if err != nil {
		return segments{}, fmt.Errorf("write-ahead log: %w", err)
	}
	var found segments
	for _, entry := range entries {
		switch filepath.Ext(entry.Name()) {
		case ".wal":
			found.newest = max(found.newest, entry.Name())
		case ".tmp":
			info, err := entry.Info()
			if errors.Is(err, os.ErrNotExist) {
				continue // it has become a segment
			}
			if err != nil {
				return segments{}, fmt.Errorf("write-ahead log: %w", err)
			}
			found.ready = found.ready || info.Size() >= wal.SegmentSizeBytes
		}
	}
	return found, nil
}

// enoughToStart refuses a full disk with the reason. A store that exists starts where etcd can, so that what was stored can
// end; a new one needs room for something to store.
func (d *disk) enoughToStart() error {
	segments, err := d.segments()
	if err != nil {
		return err
	}
	free, err := d.free(string(d.dir))
	if err != nil {
		return err
	}
	need := segments.missing() + backendGrowth
	if segments.newest == "" {
		need += 2*wal.SegmentSizeBytes + leastDiskReserve
	}
	if free < need {
		return fmt.Errorf("data directory %s is full: %d bytes free, at least %d needed", d.dir, free, need)
	}
	return nil
}
