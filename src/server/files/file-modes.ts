/**
 * Warns at start about files that decide about access and are open to other users of the host. A
 * world-writable file is refused where it is read (`lib/files/bounded-file.ts`); the rest is only a
 * warning, since mounted secrets and shared folders are readable in many places for good reasons.
 */
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { modeText } from '../../lib/files/bounded-file.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Options } from '../../options/options.ts'

const READABLE_BY_ALL = 0o004
const WRITABLE_BY_ALL = 0o002
const WRITABLE_BY_GROUP = 0o020
/** Only the owner of a file in a sticky folder can replace it. */
const STICKY = 0o1000

interface NamedFile {
  readonly flag: string
  readonly path: string
  /** Reading it is enough to authenticate. */
  readonly isSecret: boolean
}

/** Never rejects, and nothing waits for it: a file may be on a mount that hangs. */
export async function warnOfOpenFiles(options: Options, log: Log, uid: number): Promise<void> {
  await Promise.all(
    filesOf(options).map(async (file) => {
      const { flag, path } = file
      const [found, folder] = await Promise.all([modeOf(path), modeOf(dirname(path))])
      // The part that reads the file reports a missing one.
      if (found === undefined) return
      const problems = problemsOf(file, found, uid)
      if (folder !== undefined && isOpenFolder(folder.mode)) {
        problems.push('every user of this host can replace it, since its folder is world-writable')
      }
      if (problems.length === 0) return
      const mode = modeText(found.mode)
      log.warn('File permissions are too open', { flag, file: path, mode, problems })
    }),
  )
}

interface FoundMode {
  readonly mode: number
  readonly uid: number
}

function problemsOf({ isSecret }: NamedFile, { mode, uid }: FoundMode, ownUid: number): string[] {
  const problems: string[] = []
  if ((mode & WRITABLE_BY_ALL) !== 0) problems.push('every user of this host can write it')
  else if ((mode & WRITABLE_BY_GROUP) !== 0) problems.push('its group can write it')
  if (isSecret && (mode & READABLE_BY_ALL) !== 0) {
    problems.push('every user of this host can read the secret in it')
  }
  if (uid !== 0 && uid !== ownUid) problems.push(`its owner is another user, ${uid}`)
  return problems
}

function isOpenFolder(mode: number): boolean {
  return (mode & WRITABLE_BY_ALL) !== 0 && (mode & STICKY) === 0
}

async function modeOf(path: string): Promise<FoundMode | undefined> {
  try {
    return await stat(path)
  } catch {
    return undefined
  }
}

function filesOf(options: Options): readonly NamedFile[] {
  const { tlsCertFile, tlsPrivateKeyFile, certDir } = options
  const ownKey = tlsPrivateKeyFile === undefined ? join(certDir, 'tidings.key') : undefined
  const secrets: readonly (readonly [flag: string, path: string | undefined])[] = [
    ['--token-auth-file', options.tokenAuthFile],
    ['--tls-private-key-file', tlsPrivateKeyFile],
    ['--cert-dir', ownKey],
    ['--etcd-keyfile', options.etcdKeyFile],
    ['--authentication-token-webhook-config-file', options.authenticationTokenWebhookConfigFile],
    ['--authorization-webhook-config-file', options.authorizationWebhookConfigFile],
  ]
  const others: readonly (readonly [flag: string, path: string | undefined])[] = [
    ['--tls-cert-file', tlsCertFile],
    ['--client-ca-file', options.clientCaFile],
    ['--requestheader-client-ca-file', options.requestheaderClientCaFile],
    ['--oidc-ca-file', options.oidcCaFile],
    ['--etcd-cafile', options.etcdCaFile],
    ['--etcd-certfile', options.etcdCertFile],
    ['--audit-policy-file', options.auditPolicyFile],
    ['--event-rate-limit-config-file', options.eventRateLimitConfigFile],
    ['--clusters-file', options.clustersFile],
    ['--retention-policy-file', options.retentionPolicyFile],
    ...options.serviceAccountKeyFiles.map((path) => ['--service-account-key-file', path] as const),
    ...options.rbacPolicyPaths.map((path) => ['--rbac-policy-path', path] as const),
  ]
  const named = (isSecret: boolean, files: typeof secrets): NamedFile[] =>
    files.flatMap(([flag, path]) => (path === undefined ? [] : [{ flag, path, isSecret }]))
  return [...named(true, secrets), ...named(false, others)]
}
