import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where the kernel shows the process and the control groups; another folder in tests. */
export interface CgroupFolders {
  readonly proc: string
  readonly cgroups: string
}

const HOST: CgroupFolders = { proc: '/proc/self', cgroups: '/sys/fs/cgroup' }

/** Control groups are nested a few levels deep; more is a mistake of the reader. */
const levelsMax = 64

/**
 * The bytes of memory that the control groups of this process allow, the smallest of its group and of
 * the groups around it; undefined without a limit. Both versions of control groups are read: in
 * version 2 the memory of a group is beside everything else, in version 1 in a hierarchy of its own,
 * and a machine may have both. Inside a container the root that is visible is the container's group.
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

/** The limits of a group and of all groups around it, up to the root. */
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

/** Version 1 has no word for no limit, but a number near this one, rounded down to whole pages. */
const unlimited = 2 ** 62

/** Undefined for a file that does not exist or may not be read. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
