package imaging

import (
	"encoding/binary"
	"hash/crc32"
)

// fixCRC corrects the checksum of a PNG's header chunk after a change.
func fixCRC(b []byte) {
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
}
