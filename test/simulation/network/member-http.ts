/** Replaces `src/etcd/member-http.ts` in the simulation: its members have no HTTP. */

export async function readQuota(endpoint: string): Promise<number> {
  throw new Error(`${endpoint} has no HTTP`)
}

export async function readChecks(): Promise<string> {
  return 'has no such checks'
}
