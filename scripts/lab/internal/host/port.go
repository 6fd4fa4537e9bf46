package host

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// CheckPort returns an error that names who listens on an address that the lab wants.
func CheckPort(ctx context.Context, address string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err == nil {
		return listener.Close()
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	return fmt.Errorf("%s is in use by %s: end that first", address, listenerOn(address))
}

func listenerOn(address string) string {
	const unknown = "a process that could not be found"
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return unknown
	}
	var inodes []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if content, err := os.ReadFile(table); err == nil {
			inodes = append(inodes, listeningInodes(string(content), port)...)
		}
	}
	for _, inode := range inodes {
		if pid := ownerOf(inode); pid != "" {
			name, _ := os.ReadFile(filepath.Join("/proc", pid, "comm"))
			return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), pid)
		}
	}
	return unknown
}

// listeningInodes reads a table like /proc/net/tcp for the sockets that listen on a port.
func listeningInodes(table, port string) []string {
	const listening = "0A"
	var inodes []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[3] != listening {
			continue
		}
		if at, ok := parseSocketAddress(fields[1]); ok && strconv.Itoa(int(at.Port())) == port {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}

// parseSocketAddress reads the kernel's notation: an address in words of host byte order, a colon, a port.
func parseSocketAddress(text string) (netip.AddrPort, bool) {
	words, port, found := strings.Cut(text, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	raw, decodeErr := hex.DecodeString(words)
	if !found || err != nil || decodeErr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.LittleEndian.Uint32(raw[i:]))
	}
	address, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(address, uint16(number)), ok
}

func ownerOf(inode string) string {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == "socket:["+inode+"]" {
			return strings.Split(link, "/")[2]
		}
	}
	return ""
}
