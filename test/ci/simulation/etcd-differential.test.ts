/**
 * The simulated etcd against a real one, by random operations. `node <this file> 200000` runs so
 * many; TIDINGS_TEST_SEED repeats a run.
 */
import process from 'node:process'
import { test } from 'node:test'
import { versionOf } from '../../../tools/other-etcds.ts'
import { Differential } from '../../simulation/etcd/checks/differential.ts'
import { RealMember } from '../../simulation/etcd/checks/real-member.ts'
import { releaseOf } from '../../simulation/etcd/contract.ts'
import { etcdBinary, startEtcd } from '../../support/etcd.ts'
import { testSeed } from '../../support/seed.ts'

const given = Number(process.argv[2])
const operations = given > 0 ? given : 5_000
const release = releaseOf(versionOf(etcdBinary))
/** A history of its own each, so that early revisions are met as well. */
const perRun = 5_000

test('the simulated etcd replies as a real one does', { timeout: 3_600_000 }, async (context) => {
  const first = testSeed()
  for (let done = 0; done < operations; done += perRun) {
    const seed = first + done / perRun
    context.diagnostic(`seed ${seed}`)
    await using etcd = await startEtcd()
    const member = new RealMember(etcd.member(0).endpoint)
    try {
      await new Differential(member, { seed, release }).run(Math.min(perRun, operations - done))
    } catch (error) {
      throw new Error(`with TIDINGS_TEST_SEED=${seed}: ${(error as Error).message}`)
    } finally {
      member.close()
    }
  }
})
