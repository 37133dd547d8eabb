import { readBounded } from '../../lib/files/bounded-file.ts'
import { follow, type OnLook } from '../../lib/files/follow.ts'
import type { Log } from '../../lib/log/log.ts'
import { yamlDocuments } from '../../lib/text/yaml-documents.ts'
import { type AuditPolicy, readAuditPolicy } from './audit-policy.ts'

/** Enough for thousands of rules; each request is compared with each of them. */
const FILE_BYTES_MAX = 1024 * 1024

/** The current policy of a file, which is polled once a second. */
export interface FollowedAuditPolicy {
  policy(): AuditPolicy
  stop(): void
}

/**
 * Rejects if the file cannot be used; the error has its path. While a changed file cannot be used,
 * the last usable policy stays in effect.
 */
export async function openAuditPolicy(
  path: string,
  log: Log,
  onLook?: OnLook,
): Promise<FollowedAuditPolicy> {
  let inUse = await load(path)
  const follower = follow({
    inUse,
    load: (current) => load(path, current),
    onChange: (found) => {
      inUse = found
      log.info('Audit policy reloaded', { file: path, rules: found.policy.ruleCount })
    },
    onProblem: (err) => log.warn('Audit policy not reloaded', { err }),
    onMended: () => log.info('Audit policy valid again, unchanged', { file: path }),
    onLook,
  })
  return { policy: () => inUse.policy, stop: () => follower.stop() }
}

interface PolicyFile {
  readonly content: Buffer
  readonly policy: AuditPolicy
}

/** Returns `current` itself when the content of the file is unchanged. */
async function load(path: string, current?: PolicyFile): Promise<PolicyFile> {
  const content = await readBounded(path, FILE_BYTES_MAX)
  if (current?.content.equals(content) === true) return current
  try {
    return { content, policy: auditPolicyOf(content.toString()) }
  } catch (cause) {
    throw new Error(path, { cause })
  }
}

/** Throws an error that says which field of the file is wrong. */
export function auditPolicyOf(text: string): AuditPolicy {
  const [document, second] = [...yamlDocuments(text)]
  if (document === undefined) throw new Error('the file is empty')
  if (second !== undefined) throw new Error('the file has more than one document')
  return readAuditPolicy(document.value)
}
