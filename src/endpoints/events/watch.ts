import { watchPlan } from '../request/list-plan.ts'
import { negotiateWatch } from '../request/negotiate.ts'
import type { Endpoint, EventApi } from './event-api.ts'
import { WatchFeed } from './watch-feed.ts'
import { WatchFrameWriter } from './watch-frame-writer.ts'

/**
 * GET …/events?watch=true, and the older paths under …/watch/
 *
 * The response starts at once and has no natural end: a later failure is sent as a last ERROR
 * frame. Changes are read only when the client can take them (backpressure).
 */
export function watchEvents(api: EventApi): Endpoint {
  return async (request, target, caller) => {
    const encoders = api.encoders.watch(negotiateWatch(request))
    const plan = watchPlan(target, api)
    const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
    const writer = new WatchFrameWriter(encoders, plan.selector)
    return {
      status: 200,
      headers: { 'content-type': encoders.first.contentType },
      body: new WatchFeed(api, {
        plan,
        writer,
        request: request.signal,
        access: caller.recheck,
        user: (caller.sender ?? caller.user).name,
        settle,
      }),
      longRunning: true,
      settled,
    }
  }
}
