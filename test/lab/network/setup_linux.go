package network

import (
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
)

// Setup makes the network in the namespace of the calling process. The Service
// range is routed to the bridge; kube-proxy's rules rewrite it on the way.
func Setup() error {
	if err := up("lo"); err != nil {
		return err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
	bridge.Name = Bridge
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("add bridge %s: %w", Bridge, err)
	}
	_, pods, err := net.ParseCIDR(PodCIDR)
	if err != nil {
		return fmt.Errorf("read pod range: %w", err)
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(Address), Mask: pods.Mask}}
	if err := netlink.AddrAdd(bridge, address); err != nil {
		return fmt.Errorf("add address %s: %w", Address, err)
	}
	if err := up(Bridge); err != nil {
		return err
	}
	_, services, err := net.ParseCIDR(ServiceCIDR)
	if err != nil {
		return fmt.Errorf("read Service range: %w", err)
	}
	route := &netlink.Route{LinkIndex: bridge.Index, Dst: services, Src: net.ParseIP(Address)}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("add route %s: %w", ServiceCIDR, err)
	}
	return sysctls()
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find link %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring up link %s: %w", name, err)
	}
	return nil
}

// sysctls turns on what pod networking needs: forwarding, and iptables for what
// crosses the bridge (a pod reaching another through a Service). Kernels build
// the latter as a module that may not be loaded; then only such connections
// fail, so its absence is not an error.
func sysctls() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("turn on IP forwarding: %w", err)
	}
	const filter = "/proc/sys/net/bridge/bridge-nf-call-iptables"
	if err := os.WriteFile(filter, []byte("1"), 0); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("turn on iptables on bridges: %w", err)
	}
	return nil
}
