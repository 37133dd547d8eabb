import { areFiles, readPem } from '../../lib/files/bounded-file.ts'
import { type Followed, follow } from '../../lib/files/follow.ts'

/** The files of --etcd-cafile, --etcd-certfile and --etcd-keyfile; any may be left out. */
export interface EtcdCredentialFiles {
  readonly caFile: string | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
}

/** The contents of the PEM files. */
export interface EtcdCredentials {
  readonly ca?: Buffer
  readonly cert?: Buffer
  readonly key?: Buffer
}

/** The names of the flags that are set. */
export function credentialFlags(files: EtcdCredentialFiles): readonly string[] {
  return [
    ...(files.caFile === undefined ? [] : ['--etcd-cafile']),
    ...(files.certFile === undefined ? [] : ['--etcd-certfile']),
    ...(files.keyFile === undefined ? [] : ['--etcd-keyfile']),
  ]
}

/** Rejects, naming the flag, when a file cannot be read. */
export async function readEtcdCredentials(files: EtcdCredentialFiles): Promise<EtcdCredentials> {
  const [ca, cert, key] = await Promise.all([
    readIfNamed(files.caFile, '--etcd-cafile'),
    readIfNamed(files.certFile, '--etcd-certfile'),
    readIfNamed(files.keyFile, '--etcd-keyfile'),
  ])
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  }
}

/**
 * Reports credentials that differ from those in use. `onChange` throws when they cannot be used,
 * for example because the certificate was written before its key; then the old ones stay in use.
 */
export function followEtcdCredentials(
  files: EtcdCredentialFiles,
  inUse: EtcdCredentials,
  callbacks: Pick<Followed<EtcdCredentials>, 'onChange' | 'onProblem' | 'onRecovered' | 'onPoll'>,
): { stop(): void } {
  return follow({
    inUse,
    load: async (current) => {
      const named = [files.caFile, files.certFile, files.keyFile]
      if (!(await areFiles(named.filter((path) => path !== undefined)))) return current
      const found = await readEtcdCredentials(files)
      return isSame(found, current) ? current : found
    },
    ...callbacks,
  })
}

function isSame(one: EtcdCredentials, other: EtcdCredentials): boolean {
  return (['ca', 'cert', 'key'] as const).every((part) =>
    (one[part] ?? Buffer.alloc(0)).equals(other[part] ?? Buffer.alloc(0)),
  )
}

async function readIfNamed(path: string | undefined, flag: string): Promise<Buffer | undefined> {
  if (path === undefined) return undefined
  try {
    return await readPem(path)
  } catch (cause) {
    throw new Error(`${flag}: cannot be read`, { cause })
  }
}
