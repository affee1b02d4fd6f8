"""An implementation with a mistake: it counts epilogs, so that the finish of one that never started ends another."""

from partialrelease import EpilogFinish, HolderKind
from partialrelease.implementation import Implementation, serve
from partialrelease.protocol import Answer, Request


class CountsFinishes(Implementation):
    def answer(self, request: Request) -> Answer:
        if isinstance(request, EpilogFinish):
            epilogs = [action.description for action in self.job.actions if action.kind is HolderKind.EPILOG]
            if epilogs and request.description not in epilogs:
                request = EpilogFinish(epilogs[0])
        return super().answer(request)


if __name__ == "__main__":
    serve(CountsFinishes())
