import { yamlDocuments } from '../../codec/yaml-documents.ts'
import { readBounded } from '../../lib/bounded-file.ts'
import { follow, type OnLook } from '../../lib/follow.ts'
import type { Log } from '../../lib/log.ts'
import { type AuditPolicy, readAuditPolicy } from './audit-policy.ts'

/** Thousands of rules; each of them is looked at for each request. */
const FILE_BYTES_MAX = 1024 * 1024

/** The policy of a file, as it is now: it is looked at once a second. */
export interface FollowedAuditPolicy {
  policy(): AuditPolicy
  stop(): void
}

/** Rejects, naming the file, if it cannot be used. While a new one cannot be, the old one stays. */
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
    onMended: () => log.info('Audit policy in use again, as it was', { file: path }),
    onLook,
  })
  return { policy: () => inUse.policy, stop: () => follower.stop() }
}

interface PolicyFile {
  readonly content: Buffer
  readonly policy: AuditPolicy
}

/** Gives `current` itself when the file still says the same. */
async function load(path: string, current?: PolicyFile): Promise<PolicyFile> {
  const content = await readBounded(path, FILE_BYTES_MAX)
  if (current?.content.equals(content) === true) return current
  try {
    return { content, policy: auditPolicyOf(content.toString()) }
  } catch (cause) {
    throw new Error(path, { cause })
  }
}

/** Throws what is wrong with the text of such a file. */
export function auditPolicyOf(text: string): AuditPolicy {
  const [document, second] = [...yamlDocuments(text)]
  if (document === undefined) throw new Error('there is nothing in it')
  if (second !== undefined) throw new Error('there is more than one document in it')
  return readAuditPolicy(document.value)
}
