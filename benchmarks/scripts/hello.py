"""The smallest data-parallel program: join, reduce one number, leave."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
world = dist.get_world_size()
assert total.item() == world * (world - 1) / 2
dist.destroy_process_group()
