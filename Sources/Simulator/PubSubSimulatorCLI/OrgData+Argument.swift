public import ArgumentParser
public import SimulatedOrg

extension OrgData: ExpressibleByArgument {}
