"""The consumer: returns the records of a share group's member to the application.

`share_consumer` is the public class, `lifecycle` starts and closes it, `acknowledging`
acknowledges by offset, `pausing` pauses topics. The loops are in `iterators`,
`receive` and `polling`. `delivery_queue` passes records to them, `readers` decides
which loop gets records and accepts them implicitly, `left_loops` warns about loops that
end at their first record.
"""
