internal import ArgumentParser
package import SimulatedOrg

extension OrgData: ExpressibleByArgument {}
