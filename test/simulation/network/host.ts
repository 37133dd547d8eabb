import type { SimulatedProcess } from '../kernel/process.ts'
import type { Network } from './network.ts'

/** The place of a process in the network. */
export interface Host {
  readonly network: Network
  readonly replica: number
}

const hosts = new WeakMap<SimulatedProcess, Host>()

/** Connects a process to a network: its gRPC sessions reach the members of that network. */
export function attach(process: SimulatedProcess, host: Host): void {
  hosts.set(process, host)
}

export function hostOf(process: SimulatedProcess): Host | undefined {
  return hosts.get(process)
}
