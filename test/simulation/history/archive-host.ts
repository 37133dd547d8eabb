import type { SimulatedProcess } from '../kernel/process.ts'
import type { Bucket } from './bucket.ts'
import type { SimulatedEngines } from './engines.ts'

/** The place of a process in a world with an archive. */
export interface ArchiveHost {
  readonly replica: number
  readonly bucket: Bucket
  /** The processes with DuckDB of this process. */
  readonly engines: SimulatedEngines
}

const hosts = new WeakMap<SimulatedProcess, ArchiveHost>()

/** Connects a process to a store: its archive is there. */
export function attachArchive(process: SimulatedProcess, host: ArchiveHost): void {
  hosts.set(process, host)
}

export function archiveHostOf(process: SimulatedProcess | undefined): ArchiveHost {
  const host = process && hosts.get(process)
  if (host === undefined) throw new Error('the process has no simulated archive')
  return host
}
