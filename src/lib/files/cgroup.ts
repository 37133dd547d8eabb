import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where the kernel exposes the process and its control groups; overridden in tests. */
export interface CgroupFolders {
  readonly proc: string
  readonly cgroups: string
}

const HOST: CgroupFolders = { proc: '/proc/self', cgroups: '/sys/fs/cgroup' }

/** Control groups are nested only a few levels deep. */
const levelsMax = 64

/**
 * The memory limit in bytes of this process's control group and its ancestors, whichever is smallest;
 * undefined without a limit. Reads both versions of control groups, since a machine may have both:
 * version 2 has one hierarchy for everything, version 1 a separate one for memory. Inside a container,
 * the visible root is the container's group.
 */
export function cgroupMemoryLimit(folders: CgroupFolders = HOST): number | undefined {
  const table = textOf(join(folders.proc, 'cgroup'))
  const limits: number[] = []
  for (const line of table?.split('\n') ?? []) {
    const [, controllers, path = '/'] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    if (controllers === '') {
      limits.push(...limitsUpFrom(folders.cgroups, path, 'memory.max'))
    } else if (controllers?.split(',').includes('memory') === true) {
      const root = join(folders.cgroups, 'memory')
      limits.push(...limitsUpFrom(root, path, 'memory.limit_in_bytes'))
    }
  }
  return limits.length === 0 ? undefined : Math.min(...limits)
}

/** The limits of a group and all its ancestors, up to the root. */
function limitsUpFrom(root: string, path: string, file: string): readonly number[] {
  const names = path.split('/').filter((name) => name !== '' && name !== '..')
  const limits: number[] = []
  for (let levels = Math.min(names.length, levelsMax); levels >= 0; levels--) {
    const text = textOf(join(root, ...names.slice(0, levels), file))
    const limit = text === undefined || text.trim() === 'max' ? Number.NaN : Number(text)
    if (limit > 0 && limit < unlimited) limits.push(limit)
  }
  return limits
}

/** Version 1 expresses "no limit" as a number near this one, rounded down to whole pages. */
const unlimited = 2 ** 62

/** Undefined for a file that does not exist or cannot be read. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
